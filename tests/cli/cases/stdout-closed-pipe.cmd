# A reader that goes away ends the program quietly.
glyd --help | head -1
