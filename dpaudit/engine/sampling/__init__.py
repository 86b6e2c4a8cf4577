"""Drawing outputs: blocks and their seeds, rounds, executors, and checks that draws are independent."""
