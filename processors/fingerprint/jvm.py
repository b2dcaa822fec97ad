"""Frames of the JVM and of Android: classes without what compilers, proxies and obfuscators generate."""

import re

_SKIPPED = re.compile(
    r"\A(?:sun\.reflect\.|jdk\.internal\.reflect\.|java\.lang\.reflect\.|java\.lang\.invoke\.|com\.sun\.proxy\.|jdk\.proxy\d*\.|jdk\.internal\.misc\."
    r"|junit\.|org\.junit\.|org\.testng\.|org\.hamcrest\.|org\.assertj\.|com\.google\.common\.truth\.|kotlin\.test\.)"
)
_PLATFORM = re.compile(
    r"\A(?:java|javax|jdk|sun|com\.sun|kotlin|kotlinx|android|androidx|com\.android|dalvik|libcore|scala|groovy|org\.apache\.harmony"
    r"|com\.google\.android|org\.codehaus\.groovy|System|Microsoft)\."
)
_LIBRARY = re.compile(
    r"\A(?:org\.springframework|org\.hibernate|org\.apache\.(?:catalina|tomcat|coyote|jasper)"
    r"|org\.eclipse\.jetty|io\.netty|io\.grpc|io\.reactivex|rx|reactor|okhttp3|okio|retrofit2?|com\.squareup|dagger|butterknife"
    r"|com\.google\.(?:inject|common|gson|firebase|protobuf)|com\.fasterxml|org\.slf4j|ch\.qos\.logback|org\.gradle|com\.actionbarsherlock"
    r"|com\.bumptech\.glide|com\.facebook\.react|org\.greenrobot|io\.sentry|com\.crashlytics|com\.bugsnag|org\.apache\.log4j|org\.apache\.logging"
    r"|com\.android\.volley|com\.loopj|com\.nostra13|com\.facebook|com\.parse|com\.flurry|com\.crittercism|com\.onesignal|com\.tapjoy"
    r"|com\.chartboost|com\.inmobi|com\.mopub|com\.applovin|com\.vungle|com\.ironsource|com\.appsflyer|com\.adjust|com\.amplitude|com\.mixpanel"
    r"|com\.newrelic|com\.amazonaws|software\.amazon|com\.microsoft\.appcenter|org\.apache\.(?:cordova|http|commons)|org\.json|org\.webrtc"
    r"|com\.unity3d|org\.chromium|io\.flutter|org\.jboss|UnityEngine)\."
)
_GENERATED = re.compile(
    r"\$\$Lambda\$?[\w/]*|\$\$ExternalSyntheticLambda\d+|\$\$InternalSyntheticLambda[\w$]*|-\$\$Lambda\$[\w-]+|\$\$EnhancerBy\w+\$\$\w+|\$\$SpringCGLIB\$\$\w*"
    r"|\$MockitoMock\$\w+|\$Proxy\d+|_\$\$_jvst\w+|\$ByteBuddy\$\w+|\$HibernateProxy\$\w+|\$\d+(?=[.$]|\Z)|\$(?=\.)|/0x[0-9a-f]+"
)
_LAMBDA = re.compile(
    r"lambda\$(\w+?)\$\w+\Z|lambda\$\w+\Z|\$(?:default|suspendImpl|lambda\$\d+)\Z|(?<=\w)\$\d+\Z"
)
# Classes that only check what others pass to them: their caller is the place.
_GUARDS = frozenset(
    {
        "ArgumentChecks",
        "Args",
        "Assert",
        "Assertions",
        "Asserts",
        "Checks",
        "Contracts",
        "Ensure",
        "Guards",
        "Precondition",
        "Preconditions",
        "Validate",
    }
)
_SYNTHETIC = ("access$", "-$$Nest$")
# Deeper packages and longer methods are nobody's.
_SEGMENTS = 16
_METHOD_CHARACTERS = 100
# Short words that people do put into package names.
_KEPT_SHORT = frozenset(
    {
        "ai",
        "api",
        "app",
        "at",
        "cn",
        "co",
        "db",
        "de",
        "eu",
        "fr",
        "go",
        "id",
        "in",
        "io",
        "is",
        "it",
        "jp",
        "me",
        "my",
        "os",
        "ru",
        "to",
        "tv",
        "uk",
        "ui",
        "us",
    }
)


def is_skipped(function: str) -> bool:
    """Reflection, accessors, proxies and assertions stand between the frames that matter."""
    owner, _, method = function.rpartition(".")
    return (
        method.startswith(_SYNTHETIC)
        or owner[owner.rfind(".") + 1 :] in _GUARDS
        or "$$FastClassBy" in function
        or _SKIPPED.match(function) is not None
    )


def is_platform(function: str) -> bool:
    """Whether a class belongs to the runtime or the operating system."""
    return _PLATFORM.match(function) is not None


def is_library(function: str) -> bool:
    """Whether a class is a dependency's, whatever its mark says."""
    return _LIBRARY.match(function) is not None


def function_name(function: str) -> str:
    """`package.Class.method` without generated numbers; renamed segments become `*`."""
    owner, dot, method = function.partition("(")[0].rpartition(".")
    if "$" in method:
        method = _LAMBDA.sub(_lambda_owner, method[:_METHOD_CHARACTERS])
    name = owner + dot + method
    if "$" in name:
        name = _GENERATED.sub("", name).replace("..", ".")
    segments = name.split(".", _SEGMENTS)
    last = len(segments) - 2
    return ".".join(["*" if is_renamed(part, index < last) else part for index, part in enumerate(segments)])


def _lambda_owner(found: re.Match[str]) -> str:
    return found[1] or "lambda"


def is_renamed(segment: str, package: bool) -> bool:
    """Whether an obfuscator chose this segment of a name: they begin with one letter and seldom need a third."""
    return len(segment) <= 2 and segment.isalnum() and not (package and segment in _KEPT_SHORT)
