"""What detections and audits give, as types and in the shapes that others read."""
