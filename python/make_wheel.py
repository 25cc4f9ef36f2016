"""Makes the wheel of the package, for pip: with the standard library alone, so that `pip install
./python` needs no index and no network (PEP 517)."""
import base64
import hashlib
import os
import zipfile

_VERSION = "0.1.0"
_INFO = "trainyard-%s.dist-info" % _VERSION
_METADATA = """Metadata-Version: 2.1
Name: trainyard
Version: %s
Summary: The Python side of trainyard: tasks that load, wait for a device and train.
Requires-Python: >=3.8
""" % _VERSION
_WHEEL = """Wheel-Version: 1.0
Generator: make_wheel
Root-Is-Purelib: true
Tag: py3-none-any
"""


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    here = os.path.dirname(os.path.abspath(__file__))
    files = {_INFO + "/METADATA": _METADATA.encode(), _INFO + "/WHEEL": _WHEEL.encode()}
    for directory, _, names in sorted(os.walk(os.path.join(here, "trainyard"))):
        for name in sorted(names):
            if name.endswith(".py"):
                path = os.path.join(directory, name)
                with open(path, "rb") as file:
                    files[os.path.relpath(path, here)] = file.read()
    name = "trainyard-%s-py3-none-any.whl" % _VERSION
    record = ""
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record += "%s,sha256=%s,%d\n" % (path, digest, len(content))
            wheel.writestr(path, content)
        wheel.writestr(_INFO + "/RECORD", record + _INFO + "/RECORD,,\n")
    return name
