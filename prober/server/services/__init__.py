"""What the server offers: control channel, HTTP, HTTPS, FTP, raw TCP, UDP echo."""
