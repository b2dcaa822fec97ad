"""Native symbols (C, C++, Objective-C, Swift, Rust and Go) without parts added by compilers and linkers."""

import re

_SUFFIX = re.compile(
    r"(?:\.cold(?:\.\d{1,5})?|\.(?:isra|constprop|part|llvm|lto_priv)\.\d{1,20}|\$VARIANT\$\w{1,20}"
    r"|\$s?\d{1,5}|\.\d{1,20}"
    r"|::h[0-9a-f]{16}|_block_invoke(?:[_.]\d{1,5})*|@plt|@@?[A-Z]{1,10}_[\d.]{1,10}"
    r"| \+ (?:0x[0-9a-f]{1,16}|\d{1,12})"
    r"|\+0?x?[0-9a-f]{1,16}:?"
    # Go counts closures; outside of functions, in `glob..func1`, one has no other name.
    r"|\.(?<!glob\.\.)(?:func|gowrap|deferwrap)\d{1,5}|-fm|-range\d{1,5})\Z"
)
# Maximum length of a suffix, and maximum number of suffixes of a name.
_SUFFIX_CHARACTERS = 40
_SUFFIXES = 6
_LOCATION = re.compile(r" (?:\[|\.\.?/|/|[A-Za-z]:\\|[\w.-]+/[\w./-]*\.\w+:\d).*\Z")
_BLOCK = re.compile(r"\A_{0,3}\d*(?=[-+]\[)|\A___?(?=\w+_block_invoke)")
_GO_RECEIVER = re.compile(r"\(\*(\w+)(?:\[[^\]]*\])?\)(?=\.)")
_CONFORMANCE = re.compile(r" in conformance .*\Z")
_ADDRESS = re.compile(r"\A(?:0x[0-9a-fA-F]+|\d+|-?None)\b")
_RETURN_TYPE = re.compile(r"\A(?:(?!operator )[\w:]+[*&]* )+(?=[\w:~]+(?:\(|\Z|<))")

# Machinery, by purpose. Compared with cleaned names.
_ENDING = (
    r"_*abort\w*|raise|tgkill|gsignal|_*kill|_*assert\w*|_*exit|terminate\w*|__libc_\w+|.*::[aA]bort"
    r"|RaiseException|_purecall|_*(?:stack_)?chk_fail\w*"
)
_RAISING = (
    r"__cxa_\w+|_*cxx_\w+|_CxxThrow\w*|_?objc_\w+|__?exceptionPreprocess|_CFThrow\w+|[+-]\[NSException raise.*"
    r"|[-+]\[NSObject\(NSObject\) doesNotRecognizeSelector:\]|_?CF_?forwarding_prep_\w+|___forwarding___"
    r"|demangling_\w+|_?(?:_?assertionFail\w*|fatalError|preconditionFail\w*|unexpected(?:Failure|Error)).*"
    r"|.*::precondition_failure|_*swift_\w+|_*rust_.*|panic\w*"
    r"|runtime\.(?:raise|panic\w*|go\w*|throw|fatal\w*).*|_?runtime::.*"
)
_REPORTING = (
    r"_*(?:[amtl]|ub)san\w*(?:::.*)?|_*interceptor_.*|_*sanitizer.*|fuzzer::.*|LLVMFuzzerTestOneInput|WTFCrash\w*"
    r"|base::debug::.*|logging::.*|\w*CrashLog\w*|crashpad::.*|kscrash\w+|_*android_log_\w+|\w*backtrace\w*"
    r"|\w*signal_?handler\w*|_sigtramp\w*|-\[NSApplication _crashOnException:\]"
)
_MEMORY = (
    r"(?:malloc|szone|nano(?:v2)?)_\w+|free\w*|[mc]alloc|realloc|operator (?:new|delete).*|__dynamic_cast"
    r"|_*mem(?:cpy|set|move|cmp|chr)\w*|_*strn?(?:len|cpy|cmp|cat|chr|dup|str)\w*|_*platform_mem\w+"
    r"|block_(?:destroy|copy)_helper\w*|__(?:destroy|copy)_helper_block\w*"
)
_RUNNING = (
    r"w?main|_?start|_?dyld_start|_*libc_start\w*|w?WinMain|__scrt_\w+|invoke_main|BaseThreadInitThunk"
    r"|(?:UI|NS)ApplicationMain|-\[(?:UI|NS)Application _?run\]|_*pthread_\w+|_*start_thread|start_wqthread"
    r"|thread_start|_dispatch_\w+|___?CF\w*|CFRunLoop\w+|GSEvent\w+|mach_msg\w*|syscall|Rtl\w+|art::.*"
    r"|boost::(?:thread|call_once).*"
)
_WRAPPING = (
    r"(?:std|core|alloc)::.*|boost::(?:function|_bi|bind|detail)\w*::.*|(?:(?:.*::)?lambda::)?operator_call"
)
_NAMELESS = r"stripped_application_code|unknown|\?\?\?|None|null|_mh_execute_header|lib[\w+.-]*\.so[\d.]*"
_HELPERS = re.compile("|".join([_ENDING, _RAISING, _REPORTING, _MEMORY, _RUNNING, _WRAPPING, _NAMELESS]))


# Apple's libraries of the kernel's calls, C++'s and Objective-C's runtime, queues and the loader: their caller
# is the place. https://developer.apple.com/documentation/xcode/analyzing-a-crash-report
_MACHINERY = re.compile(
    r"(?:.*/)?(?:libsystem_\w+|libc\+\+abi|libobjc|libdispatch|dyld(?:_sim)?)(?:\.[A-Z])?(?:\.dylib)?"
)
# The signal of a bad access depends on the address, the processor and the reporter.
_BAD_ACCESS_TEXT = """
    EXC_BAD_ACCESS SIGSEGV SIGBUS SEGV Segfault access-violation EXCEPTION_ACCESS_VIOLATION Crash
"""
_BAD_ACCESS = frozenset(_BAD_ACCESS_TEXT.split())
_TRAPS = frozenset({"EXC_BREAKPOINT", "EXC_BAD_INSTRUCTION", "SIGTRAP", "SIGILL"})


def one_crash(kind: str) -> str:
    """A crash's type; all bad accesses are one, and all traps: an Intel processor calls them illegal instructions."""
    if kind in _TRAPS:
        return "trap"
    return "bad access" if kind in _BAD_ACCESS else kind


def is_crash(kind: str) -> bool:
    """Whether the system worded the message, with an address; Go prints the type of an app's error as a pointer."""
    return not kind.startswith("*")


def function_name(function: str) -> str:
    """The name in the source, without arguments, templates and compiler suffixes; empty for a bare address."""
    name = _LOCATION.sub("", function) if " " in function else function
    if _ADDRESS.match(name):
        return ""
    name = _BLOCK.sub("", _without_suffixes(name))
    if name[:2] in {"-[", "+["}:
        return name
    if " " in name:
        name = _CONFORMANCE.sub("", name)
    for nameless in ("(anonymous namespace)::", "`anonymous namespace'::", "{{closure}}"):
        name = name.replace(nameless, "")
    if "(" in name or "<" in name:
        name = name.replace("operator()", "operator_call")
        name = _without_brackets(_GO_RECEIVER.sub(r"\1", name))
    if " " in name:
        name = _RETURN_TYPE.sub("", name.strip())
    return name.strip(" :*&")


def is_machinery(file: str) -> bool:
    """Whether a library is one of the runtime."""
    return ("lib" in file or "dyld" in file) and _MACHINERY.fullmatch(file) is not None


def is_helper(name: str) -> bool:
    """Whether a cleaned name is machinery: crashing, allocating or running."""
    return _HELPERS.fullmatch(name) is not None


def _without_suffixes(name: str) -> str:
    for _ in range(_SUFFIXES):
        tail = _SUFFIX.search(name, max(0, len(name) - _SUFFIX_CHARACTERS))
        if tail is None:
            break
        name = name[: tail.start()]
    return name


def _without_brackets(name: str) -> str:
    """The name without arguments and template arguments, in one pass over the characters."""
    kept: list[str] = []
    depth = 0
    previous = ""
    for character in name:
        if character in "<(":
            depth += 1
        elif character in ">)":
            if depth and previous != "-":
                depth -= 1
        elif not depth:
            kept.append(character)
        previous = character
    return "".join(kept).removesuffix(" const")
