"""Reports: all of them functions of one canonical, versioned document."""
