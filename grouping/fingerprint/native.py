"""Native symbols (C, C++, Objective-C, Swift, Rust and Go) without parts added by compilers and linkers."""

import re

_SUFFIX = re.compile(
    r"(?:\.cold(?:\.\d{1,5})?|\.(?:isra|constprop|part|llvm|lto_priv|vec)\.\d{1,20}|\$VARIANT\$\w{1,20}"
    r"|\$s?\d{1,5}|\.\d{1,20}"
    r"|::h[0-9a-f]{16}|_block_invoke(?:[_.]\d{1,5})*|_vec\.\d{1,5}|@plt|@@?[A-Z]{1,10}_[\d.]{1,10}"
    r"| \+ (?:0x[0-9a-f]{1,16}|\d{1,12})"
    r"|\+0?x?[0-9a-f]{1,16}:?"
    # Go counts closures; outside of functions, in `glob..func1`, one has no other name.
    r"|\.(?<!glob\.\.)(?:func|gowrap|deferwrap)\d{1,5}|-fm|-range\d{1,5})\Z"
)
# Maximum length of a suffix, and maximum number of suffixes of a name.
_SUFFIX_CHARACTERS = 40
_SUFFIXES = 6
_LOCATION = re.compile(r" (?:\[|\.\.?/|/|[A-Za-z]:\\|[\w.-]+/[\w./-]*\.\w+:\d).*\Z")
_BLOCK = re.compile(r"\A_{0,3}\d*(?=[-+]\[)|\A__\d+(?=[-+]\[)|\A___?(?=\w+_block_invoke)")
_SWIFT = re.compile(
    r"\A(?:closure #\d+ (?:\([^)]*\) )?(?:@\w+ )?(?:[^ ]+ -> [^ ]+ )?in |partial apply(?: forwarder)? for "
    r"|@objc |specialized |merged "
    r"|generic specialization <[^>]*> of |implicit closure #\d+ in |protocol witness for |thunk for "
    r"|reabstraction thunk helper |static "
    r"|function signature specialization <[^>]*> of |\(extension in [^)]*\):"
    r"|\(\d+\) (?:suspend|await) resume partial function for )+"
)
_GO_RECEIVER = re.compile(r"\(\*(\w+)(?:\[[^\]]*\])?\)(?=\.)")
_BRACKETS = re.compile(r"([<>()])")
_CONFORMANCE = re.compile(r" in conformance .*\Z")
_ADDRESS = re.compile(r"\A(?:0x[0-9a-fA-F]+|\d+|-?None)\b")
_RETURN_TYPE = re.compile(
    r"\A(?:virtual |static |void |bool |int |auto |(?!operator )[\w:]+[*&]* )+(?=[\w:~]+(?:\(|\Z|<))"
)

# Machinery, by purpose. Compared with cleaned names.
_ENDING = (
    r"_*abort\w*|raise|tgkill|gsignal|_*kill|_*assert\w*|_*exit|terminate\w*|__libc_\w+|__GI_\w+"
    r"|.*::[aA]bort|RaiseException"
    r"|_invoke_watson|invalid_parameter\w*|_purecall|_RTC_\w+|_*security_\w+|_*stack_chk_fail\w*"
    r"|_*fortify_\w+|_*chk_fail\w*|_*report_(?:gs|range|security)\w+"
    r"|Py_FatalError"
)
_RAISING = (
    r"__cxa_\w+|_*cxx_\w+|_CxxThrow\w*|_?objc_\w+|__?exceptionPreprocess|_NSRaise\w*|_CFThrow\w+"
    r"|\+\[NSException raise.*|-\[NSException raise\]"
    r"|[-+]\[NSObject\(NSObject\) doesNotRecognizeSelector:\]|-\[NSAssertionHandler .*"
    r"|_?CF_?forwarding_prep_\w+|___forwarding___|demangling_\w+"
    r"|_?(?:runtime::)?(?:_?assertionFail\w*|fatalError|preconditionFail\w*|unexpected(?:Failure|Error)).*"
    r"|.*::precondition_failure"
    r"|_*swift_\w+|specialized _\w*|Swift\.\w+|_T0?s.*assertion.*|\$ss17_assertion.*|rust_\w+|_*rust_.*|panic\w*"
    r"|runtime\.(?:raise|panic\w*|go\w*|throw|fatal\w*).*"
)
_REPORTING = (
    r"_*(?:asan|msan|tsan|lsan|ubsan)\w*(?:::.*)?|_*interceptor_.*|_*sanitizer.*|fuzzer::.*"
    r"|LLVMFuzzerTestOneInput|WTFCrash\w*"
    r"|base::debug::.*|logging::.*|google::LogMessage.*|\w*CrashLog\w*|crashpad::.*|google_breakpad::.*"
    r"|kscrash\w+|_*android_log_\w+|\w*backtrace\w*"
    r"|\w*[sS]tackTrace\w*|\w*signal_?handler\w*|_sigtramp\w*"
    r"|-\[NSApplication _crashOnException:\]"
)
_MEMORY = (
    r"(?:malloc|szone|tiny|small|nano(?:v2)?)_\w+|free\w*|malloc|realloc|calloc"
    r"|operator (?:new|delete).*|__dynamic_cast"
    r"|_*mem(?:cpy|set|move|cmp|chr)\w*|_*str(?:len|cpy|cmp|cat|chr|dup|ncpy|ncmp|str)\w*|_*platform_mem\w+"
    r"|block_(?:destroy|copy)_helper\w*|__(?:destroy|copy)_helper_block\w*"
)
_RUNNING = (
    r"main|start|_start|_?dyld_start|_*libc_start\w*|w?main|w?WinMain|__scrt_\w+|invoke_main"
    r"|_*tmainCRTStartup|BaseThreadInitThunk|UIApplicationMain"
    r"|NSApplicationMain|-\[(?:UI|NS)Application _?run\]|_*pthread_\w+|_*start_thread|start_wqthread"
    r"|thread_start|_*clone|_*psynch_\w+|_dispatch_\w+"
    r"|___?CF\w*|CFRunLoop\w+|GSEvent\w+|mach_msg\w*|syscall|KiUser\w+|Rtl\w+|Nt\w+|Zw\w+|art::.*"
    r"|boost::(?:thread|call_once)\w*.*"
)
_WRAPPING = (
    r"std::.*|core::.*|alloc::.*|boost::(?:function|_bi|bind|detail)\w*::.*|operator_call|operator\[\]"
    r"|(?:.*::)?lambda::operator_call"
)
_NAMELESS = (
    r"stripped_application_code|redacted|unknown|\?\?\?|None|null|nullptr|_mh_execute_header"
    r"|lib[\w+.-]*\.so[\d.]*"
)
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


def function_name(function: str) -> str:
    """The name in the source, without arguments, templates and compiler suffixes; empty for a bare address."""
    name = _LOCATION.sub("", function) if " " in function else function
    if _ADDRESS.match(name):
        return ""
    name = _BLOCK.sub("", _without_suffixes(name))
    if name[:2] in {"-[", "+["}:
        return name
    if " " in name:
        name = _CONFORMANCE.sub("", _SWIFT.sub("", name))
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
    """The name without arguments and template arguments, in one pass."""
    kept: list[str] = []
    depth = 0
    previous = ""
    for text in _BRACKETS.split(name):
        if text in {"<", "("}:
            depth += 1
        elif text in {">", ")"}:
            if not previous.endswith("-"):
                depth = max(0, depth - 1)
        elif depth == 0:
            kept.append(text)
        previous = text
    return "".join(kept).removesuffix(" const")
