"""The console: pages for people, made here, with a little JavaScript of our own that makes them live.

Every page works without it: forms are plain forms. Whoever looks sees what their token is for, and nobody else's.
"""
