__version__ = get('2')
