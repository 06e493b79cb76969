"""Whether a program was built with a sanitizer, which takes memory and time of its own."""


def has_sanitizer(program):
    binary = program.read_bytes()
    return b"__asan_init" in binary or b"__tsan_init" in binary
