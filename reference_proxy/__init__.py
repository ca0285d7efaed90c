"""A real proxy of every kind that splits TCP connections, with its truth; see docs/guide/reference-proxy.md.

`relay` joins two TCP connections: at once, store and forward, or as a control law allows. `http` exchanges whole
objects, `tunnel` carries the mobile leg in UDP. `interception` accepts connections and finds which server the client
requests. `service` runs a proxy, `serving` one connection.
"""
