"""Frames of the JVM and of Android: classes without what compilers, proxies and obfuscators generate."""

import re

_SKIPPED = re.compile(
    r"\A(?:sun\.reflect\.|jdk\.internal\.reflect\.|java\.lang\.reflect\.|java\.lang\.invoke\.|com\.sun\.proxy\.|jdk\.proxy\d*\.|jdk\.internal\.misc\."
    r"|junit\.|org\.junit\.|org\.testng\.|org\.hamcrest\.|org\.assertj\.|com\.google\.common\.truth\.|kotlin\.test\."
    r"|org\.fest\.assertions\.|org\.apache\.tools\.ant\.|org\.apache\.maven\.|com\.intellij\.rt\.|org\.eclipse\.jdt\.internal\.junit)"
)
_PLATFORM = re.compile(
    r"\A(?:java|javax|jdk|sun|com\.sun|kotlin|kotlinx|android|androidx|com\.android|dalvik|libcore|scala|groovy|org\.apache\.harmony"
    r"|com\.google\.android|org\.codehaus\.groovy|System|Microsoft)\."
)
# What apps are built with; clients often mark it as the app's own.
_LIBRARIES = """
    UnityEngine bolts butterknife ch.qos.logback cn.domob com.actionbarsherlock com.adcolony com.adjust com.adobe
    com.airpush com.alipay com.amazon com.amazonaws com.amplitude com.ansca com.applovin com.appsflyer com.astuetz
    com.badlogic com.baidu com.braintreepayments com.bugsense com.bugsnag com.bumptech com.chartboost com.couchbase
    com.crashlytics com.crittercism com.facebook com.fasterxml com.flurry com.google.ads com.google.common
    com.google.firebase com.google.gson com.google.inject com.google.protobuf com.google.zxing com.handmark com.heyzap
    com.huawei com.inmobi com.instabug com.ironsource com.j256 com.kochava com.localytics com.loopj com.mapbox
    com.microsoft.appcenter com.millennialmedia com.mixpanel com.mobfox com.mopub com.newrelic com.nineoldandroids
    com.nostra13 com.onesignal com.parse com.paypal com.phonegap com.pollfish com.pubnub com.pusher com.revmob
    com.smaato com.splunk com.squareup com.startapp com.stripe com.swrve com.tapjoy com.testfairy
    com.thoughtworks.xstream com.twilio com.twitter.sdk com.umeng com.unity3d com.urbanairship com.vungle com.xiaomi
    dagger io.fabric io.flutter io.grpc io.netty io.reactivex io.realm io.sentry mono okhttp3 okio org.acra
    org.altbeacon org.apache.catalina org.apache.commons org.apache.cordova org.apache.coyote org.apache.http
    org.apache.jasper org.apache.log4j org.apache.logging org.apache.thrift org.apache.tomcat org.appcelerator
    org.chromium org.cocos2dx org.eclipse.jetty org.fmod org.gradle org.greenrobot org.hibernate org.jboss org.json
    org.osmdroid org.simpleframework org.slf4j org.springframework org.webrtc reactor retrofit retrofit2 rx
    software.amazon uk.co.senab
"""
_LIBRARY = re.compile(rf"(?:{'|'.join(map(re.escape, _LIBRARIES.split()))})\.")
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
_SHORT = 2
_LONGEST_RENAMED = 3
# What people call methods with three letters, or frameworks call by name.
_VERBS = frozenset(
    {"add", "end", "get", "log", "map", "max", "min", "new", "now", "pop", "put", "run", "set", "sum", "zip"}
)
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
    owner, dot, method = _declared(function).rpartition(".")
    if "$" in method:
        method = _LAMBDA.sub(_lambda_owner, method[:_METHOD_CHARACTERS])
    name = owner + dot + method
    if "$" in name:
        name = _GENERATED.sub("", name).replace("..", ".")
    *package, owner, method = name.split(".", _SEGMENTS) if "." in name else ("", name)
    if not owner:
        return method
    owner = "$".join(["*" if _is_renamed_class(part) else part for part in owner.split("$")])
    if len(method) <= (_LONGEST_RENAMED if owner[-1] == "*" and method not in _VERBS else _SHORT):
        method = "*"
    folders = ["*" if len(part) <= _SHORT and part not in _KEPT_SHORT else part for part in package]
    return ".".join([*folders, owner, method])


def _declared(function: str) -> str:
    """Without arguments; of .NET also without type arguments and the second dot of a constructor."""
    function = function.partition("(")[0].rstrip()
    if function.endswith("]"):
        function = function.partition("[")[0]
    return function.replace("..", ".") if function.endswith("ctor") else function


def _lambda_owner(found: re.Match[str]) -> str:
    return found[1] or "lambda"


def _is_renamed_class(name: str) -> bool:
    """Obfuscators count through the letters; people begin a class with a capital and seldom stop at two."""
    return len(name) <= _SHORT or (len(name) <= _LONGEST_RENAMED and name[0].islower())
