"""The structures of tile/tile.h and tile/launch.h for ctypes."""
import ctypes


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class Value(ctypes.Union):
    _fields_ = [("tensor", ctypes.c_void_p), ("integer", ctypes.c_int64), ("number", ctypes.c_double)]


class Argument(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("flags", ctypes.c_uint32), ("value", Value)]


ARG_TENSOR, ARG_INTEGER, ARG_NUMBER = 1, 2, 4


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("code", ctypes.c_int), ("argument", ctypes.c_int32), ("reserved", ctypes.c_uint32 * 5),
                ("message", ctypes.c_char * 992)]


class Setting(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_char_p)]


class CompileOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("file", ctypes.c_char_p), ("target", ctypes.c_char_p),
                ("settings", ctypes.POINTER(Setting)), ("setting_count", ctypes.c_size_t), ("flags", ctypes.c_uint32)]


class LaunchOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("stream", ctypes.c_void_p), ("error", ctypes.POINTER(Error))]


class Settings(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("cpu_capability", ctypes.c_char_p), ("threads", ctypes.c_int),
                ("on_miss", ctypes.c_int), ("variant_limit", ctypes.c_int), ("log", ctypes.c_uint32)]


class CompilerOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("import_paths", ctypes.c_void_p),
                ("import_path_count", ctypes.c_size_t), ("settings", ctypes.POINTER(Settings))]


class EmitOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("stage", ctypes.c_int), ("kernel", ctypes.c_char_p),
                ("after", ctypes.c_char_p), ("general", ctypes.c_bool)]


def open_library(path):
    api = ctypes.CDLL(path)
    for name in ("tile_report_text", "tile_stage_name"):
        getattr(api, name).restype = ctypes.c_char_p
    return api


def create_compiler(api, variant_limit=8):
    compiler = ctypes.c_void_p()
    settings = Settings(struct_size=ctypes.sizeof(Settings), variant_limit=variant_limit)
    options = CompilerOptions(struct_size=ctypes.sizeof(CompilerOptions), settings=ctypes.pointer(settings))
    if api.tile_compiler_create(ctypes.byref(options), ctypes.byref(compiler)):
        raise RuntimeError("tile_compiler_create failed")
    return compiler


def compile_options(target, values):
    """Keep what this returns for as long as the options are in use."""
    settings = (Setting * max(1, len(values)))()
    for setting, (key, value) in zip(settings, values.items()):
        setting.name, setting.value = key.encode(), str(value).encode()
    return CompileOptions(struct_size=ctypes.sizeof(CompileOptions), target=target.encode(), settings=settings,
                          setting_count=len(values))
