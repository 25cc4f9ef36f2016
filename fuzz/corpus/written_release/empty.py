__version__ = ''
