"""`moraine view`: pyramids in a browser, from a server on this machine or from a folder of files.

The server sends numbers of 8 or 16 bits, the page colors them. `layers` finds what there is to see, `reader` reads it
through a cache, `codes` turns values into numbers, `tiles` and `queries` make what the page asks for, `answer` is the
whole of the server as one function, `serve` puts that function behind a port of this machine.
"""
