"""Views cut outputs into cells that can be counted, and are learned from outputs of earlier rounds."""
