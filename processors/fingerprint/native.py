"""Native symbols: C, C++, Objective-C, Swift and Rust, without what compilers and linkers add."""

import re

_SUFFIX = re.compile(
    r"(?:\.cold(?:\.\d{1,5})?|\.(?:isra|constprop|part|llvm|lto_priv|vec)\.\d{1,20}|\$VARIANT\$\w{1,20}|\$s?\d{1,5}|\.\d{1,20}"
    r"|::h[0-9a-f]{16}|_block_invoke(?:[_.]\d{1,5})*|_vec\.\d{1,5}|@plt|@@?[A-Z]{1,10}_[\d.]{1,10}|\s\+\s(?:0x[0-9a-f]{1,16}|\d{1,12})"
    r"|\+0?x?[0-9a-f]{1,16}:?)\Z"
)
# No suffix is longer, and none stands more often than that at the end of one name.
_SUFFIX_CHARACTERS = 40
_SUFFIXES = 6
_LOCATION = re.compile(r" (?:\[|\.\.?/|/|[A-Za-z]:\\|[\w.-]+/[\w./-]*\.\w+:\d).*\Z")
_BLOCK = re.compile(r"\A_{0,3}\d*(?=[-+]\[)|\A__\d+(?=[-+]\[)|\A___?(?=\w+_block_invoke)")
_SWIFT = re.compile(
    r"\A(?:closure #\d+ (?:\([^)]*\) )?(?:@\w+ )?(?:[^ ]+ -> [^ ]+ )?in |partial apply(?: forwarder)? for |@objc |specialized |merged "
    r"|generic specialization <[^>]*> of |implicit closure #\d+ in |protocol witness for |thunk for |reabstraction thunk helper |static "
    r"|function signature specialization <[^>]*> of |\(extension in [^)]*\):|\(\d+\) (?:suspend|await) resume partial function for )+"
)
_CONFORMANCE = re.compile(r" in conformance .*\Z")
_ADDRESS = re.compile(r"\A(?:0x[0-9a-fA-F]+|\d+|-?None)\b")
_RETURN_TYPE = re.compile(
    r"\A(?:virtual |static |void |bool |int |auto |[\w:]+[*&]* )+(?=[\w:~]+(?:\(|\Z|<))"
)

_HELPERS = re.compile(
    r"\A(?:_*pthread_\w+|_*abort\w*|raise|tgkill|gsignal|_*kill|__libc_\w+|__GI_\w+|_*assert\w*|_*exit|terminate|std::\w*terminate\w*|__cxa_\w+|_*cxx_\w+"
    r"|_?objc_\w+|__?exceptionPreprocess|_NSRaise\w*|\+\[NSException raise.*|-\[NSException raise\]|_?CF_?forwarding_prep_\w+|___forwarding___"
    r"|-\[NSObject\(NSObject\) doesNotRecognizeSelector:\]|malloc_\w+|szone_\w+|tiny_\w+|small_\w+|nano_\w+|free\w*|malloc|realloc|calloc|_?CFRelease|_?CFRetain"
    r"|_*mem(?:cpy|set|move|cmp|chr)\w*|_*str(?:len|cpy|cmp|cat|chr|dup|ncpy|ncmp|str)\w*|_*platform_mem\w+"
    r"|_*asan\w*::.*|_*asan_\w+|_*interceptor_.*|_*sanitizer.*|_*ubsan.*|_*msan.*|_*tsan.*|_*lsan.*|fuzzer::.*|operator (?:new|delete).*|_*interceptor\w*"
    r"|WTFCrash\w*|\w*_Fatal|\w*FatalError\w*|base::debug::.*|logging::.*|google::LogMessage.*|crashpad::.*|google_breakpad::.*|abort_message\w*|demangling_\w+"
    r"|_?(?:swift_)?(?:runtime::)?(?:assertionFail\w*|_assertionFailure.*|assertionFailure.*|fatalError\w*|preconditionFail\w*|unexpected(?:Failure|Error)\w*).*"
    r"|_*swift_\w+|_*android_log_\w+|specialized _\w*|Swift\.\w+|_T0?s.*assertion.*|\$ss17_assertion.*|std::.*|boost::(?:function|_bi|bind|detail)\w*::.*|<?core::.*|<?alloc::.*|<?std::.*"
    r"|rust_\w+|_*rust_.*|panic\w*|runtime\.(?:raise|panic\w*|go\w*|throw|fatal\w*).*|_*report_\w+|_*stack_chk_fail\w*|_*fortify_\w+|_*chk_fail\w*|RaiseException|KiUser\w+|Rtl\w+|Nt\w+|Zw\w+|_purecall"
    r"|main|start|_?dyld_start|_*libc_start\w*|_start|wmain|WinMain|UIApplicationMain|NSApplicationMain|__scrt_\w+|invoke_main|_*tmainCRTStartup|_*start_thread|___?CF\w*|CFRunLoop\w+|GSEvent\w+|_dispatch_\w+|start_wqthread|thread_start|clone|__clone|BaseThreadInitThunk|CrashTrampolineAsm"
    r"|LLVMFuzzerTestOneInput|wait4|do_system|syscall|_*psynch_\w+|mach_msg\w*|nullptr|backtrace\w*|\w*[sS]tackTrace\w*|\w*signal_?handler\w*|_sigtramp\w*|HandleAbortSignal|art::.*|_?VirtualCall|libsystem_\w+"
    r"|block_(?:destroy|copy)_helper\w*|__(?:destroy|copy)_helper_block\w*|stripped_application_code|redacted|<redacted>|<unknown>|\?\?\?|None|null|<libclang.*|_*security_\w+|invalid_parameter\w*|_invoke_watson|terminate\w*|_CxxThrow\w*|_RTC_\w+)\Z"
)


def function_name(function: str) -> str:
    """The name in the source, without arguments, templates and what a compiler appended; empty for a bare address."""
    name = _LOCATION.sub("", function)
    if _ADDRESS.match(name):
        return ""
    name = _without_suffixes(name)
    if name[:2] in {"-[", "+["}:
        return name
    block = _BLOCK.match(name)
    if block is not None:
        name = name[block.end() :]
        if name[:2] in {"-[", "+["}:
            return name
    name = _SWIFT.sub("", name)
    name = _CONFORMANCE.sub("", name)
    name = (
        name.replace("(anonymous namespace)::", "")
        .replace("`anonymous namespace'::", "")
        .replace("{{closure}}", "")
        .replace("operator()", "operator_call")
    )
    name = _without_brackets(name)
    name = _RETURN_TYPE.sub("", name.strip())
    return name.strip(" :*&")


def is_helper(name: str) -> bool:
    """Whether a cleaned name belongs to the machinery of crashing, allocating or running, not to a place."""
    return _HELPERS.match(name) is not None


def _without_suffixes(name: str) -> str:
    for _ in range(_SUFFIXES):
        tail = _SUFFIX.search(name, max(0, len(name) - _SUFFIX_CHARACTERS))
        if tail is None:
            break
        name = name[: tail.start()]
    return name


def _without_brackets(name: str) -> str:
    """Arguments and template arguments cut out, in one pass over the characters."""
    if "(" not in name and "<" not in name:
        return name
    kept: list[str] = []
    depth = 0
    previous = ""
    for character in name:
        if character in "<(":
            depth += 1
        elif character in ">)":
            if previous != "-":
                depth = max(0, depth - 1)
        elif depth == 0:
            kept.append(character)
        previous = character
    return "".join(kept).removesuffix(" const")
