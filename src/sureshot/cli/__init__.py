"""The command line: parse, call, print. Nothing here knows how a thing is done."""
