"""What theory says of TCP: closed forms with their units, the domain in which each holds, and a refusal outside it."""
