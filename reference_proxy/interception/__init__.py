"""How a proxy gets connections and their destinations: diversion rules, explicit requests, allowed destinations."""
