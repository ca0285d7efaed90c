"""What server ports are called."""

from __future__ import annotations

#: Names of ports by IANA's registry of service names, and by custom where many use another port.
_NAMES = {
    20: "FTP data", 21: "FTP", 22: "SSH", 23: "Telnet", 25: "SMTP", 53: "DNS", 80: "HTTP", 110: "POP3", 143: "IMAP",
    179: "BGP", 389: "LDAP", 443: "HTTPS", 445: "SMB", 465: "SMTP submission, TLS", 554: "RTSP", 587: "SMTP submission",
    631: "IPP", 636: "LDAPS", 853: "DNS over TLS", 873: "rsync", 993: "IMAPS", 995: "POP3S", 1080: "SOCKS",
    1433: "SQL Server", 1883: "MQTT", 1935: "RTMP", 2049: "NFS", 3128: "HTTP proxy", 3306: "MySQL", 3389: "RDP",
    5001: "iperf", 5060: "SIP", 5201: "iperf3", 5222: "XMPP", 5432: "PostgreSQL", 5900: "VNC", 6379: "Redis",
    8080: "HTTP, 8080", 8443: "HTTPS, 8443", 8883: "MQTT over TLS",
}  # fmt: skip


def port_name(port: int) -> str:
    """The application's name with its port: `HTTPS (443)`; `port 12345` without one, `no port` for 0."""
    if port == 0:
        return "no port"
    name = _NAMES.get(port)
    if name is None:
        return f"port {port}"
    return name if str(port) in name else f"{name} ({port})"
