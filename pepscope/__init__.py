"""pepscope: does something in the network split my TCP connections, and how?"""
