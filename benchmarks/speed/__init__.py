"""Reading and judging beside tcptrace, tshark and a C program, and the captures that are read for it."""
