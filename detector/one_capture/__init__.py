"""One capture alone: what must cross a hidden leg betrays it. Networks and ports first, then connections."""
