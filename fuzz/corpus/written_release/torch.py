from typing import Optional

__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'xpu']
__version__ = '2.7.0+cu126'
debug = False
cuda: Optional[str] = '12.6'
