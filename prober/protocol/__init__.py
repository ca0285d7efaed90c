"""The protocols of both ends: messages of the control channel, requests on the plain protocols, objects."""
