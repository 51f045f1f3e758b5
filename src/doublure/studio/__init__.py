"""The studio: one local web application from a table to a released bundle, as screens over the public API.

::

    folder.py    the folder of a project: which paths are inside it
    project.py   what was decided so far: project.yaml, and the schema that follows
    script.py    the same on the command line and in Python
    guard.py     who may ask: token, cookie, host, origin; headers of every answer
    peer.py      whose process asks
    visit.py     one request to a screen, the studio behind it, and the errors beside fields
    pages.py     templates
    jobs.py      commands as processes that outlive the server
    runs.py      runs in the folder, and their commands
    frames.py    pages that are shown, and not trusted
    steps/       one file a screen
    app.py       routes
    server.py    the server on this machine

Screens hold no logic: they call what a script would call. Each shows that script.
"""
