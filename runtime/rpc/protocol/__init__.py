"""Protocol between workers: sessions, as state machines without sockets or clocks."""
