"""Sessions: what workers say to each other, as a state machine without sockets."""
