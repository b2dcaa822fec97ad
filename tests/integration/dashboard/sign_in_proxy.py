"""A stand-in OpenID provider, and the proxies that sign people in with it, as processes."""

import asyncio
import base64
import json
import subprocess
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

from tests.eventually import eventually
from tests.programs import program
from tests.unit.dashboard.auth.test_proxy_identity import SECRET


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _number(value: int) -> str:
    return _base64(value.to_bytes((value.bit_length() + 7) // 8, "big"))


class Provider:
    """Signs in whoever `person` and `groups` name, without asking; `sign_ins` counts them."""

    def __init__(self) -> None:
        self.person, self.groups, self.sign_ins = "", [""], 0
        self.url = ""
        self._key = rsa.generate_private_key(65_537, 2_048)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator["Provider"]:
        """Until the end of the block."""
        app = web.Application()
        app.router.add_get("/.well-known/openid-configuration", self._discover)
        app.router.add_get("/authorize", self._authorize)
        app.router.add_post("/token", self._token)
        app.router.add_get("/keys", self._keys)
        async with TestServer(app) as server:
            self.url = str(server.make_url("/")).rstrip("/")
            yield self

    async def _discover(self, _request: web.Request) -> web.Response:
        paths = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
        found: dict[str, Any] = {name: f"{self.url}/{path}" for name, path in paths.items()}
        algorithms = {"id_token_signing_alg_values_supported": ["RS256"]}
        return web.json_response(found | algorithms | {"issuer": self.url})

    async def _authorize(self, request: web.Request) -> web.Response:
        self.sign_ins += 1
        query = request.query
        raise web.HTTPFound(f"{query['redirect_uri']}?code=x&state={query['state']}")

    async def _token(self, _request: web.Request) -> web.Response:
        now = int(time.time())
        claims = {"iss": self.url, "aud": "svc", "sub": self.person, "email": self.person}
        claims |= {"iat": now, "exp": now + 3_600, "groups": self.groups, "email_verified": True}  # type: ignore[dict-item]
        parts = ({"alg": "RS256", "typ": "JWT", "kid": "1"}, claims)
        text = ".".join(_base64(json.dumps(part).encode()) for part in parts)
        signed = f"{text}.{_base64(self._key.sign(text.encode(), padding.PKCS1v15(), SHA256()))}"
        return web.json_response({"access_token": "x", "token_type": "Bearer", "id_token": signed})

    async def _keys(self, _request: web.Request) -> web.Response:
        public = self._key.public_key().public_numbers()
        key = {"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1"}
        return web.json_response({"keys": [key | {"n": _number(public.n), "e": _number(public.e)}]})


@contextmanager
def _running(arguments: Sequence[str], log: Path) -> Iterator[None]:
    """A process until the end of the block, its output in a file."""
    with log.open("wb") as output:
        process = subprocess.Popen(arguments, stdout=output, stderr=subprocess.STDOUT)
        try:
            yield
        finally:
            process.kill()
            process.wait()


def oauth2_proxy(
    folder: Path, provider: Provider, port: int, dashboard: str, seen_at: int
) -> AbstractContextManager[None]:
    """oauth2-proxy before the dashboard; people reach it at the port `seen_at`."""
    claims = {"X-Forwarded-User": "email", "X-Forwarded-Groups": "groups"}
    named = [{"name": name, "values": [{"claimSource": {"claim": claim}}]} for name, claim in claims.items()]
    secret = {"name": "Svc-Proxy-Secret", "values": [{"secretSource": {"fromFile": str(folder / "secret")}}]}
    (folder / "secret").write_text(SECRET)
    (folder / "client").write_text("secret")
    oidc = {
        "issuerURL": provider.url,
        "emailClaim": "email",
        "groupsClaim": "groups",
        "audienceClaims": ["aud"],
    }
    config = {
        "server": {"bindAddress": f"127.0.0.1:{port}"},
        "upstreamConfig": {"upstreams": [{"id": "svc", "path": "/", "uri": dashboard}]},
        "injectRequestHeaders": [*named, secret],
        "injectResponseHeaders": [
            {"name": name.replace("Forwarded", "Auth-Request"), "values": [{"claimSource": {"claim": claim}}]}
            for name, claim in claims.items()
        ],
        "providers": [
            {
                "id": "oidc",
                "provider": "oidc",
                "clientID": "svc",
                "clientSecretFile": str(folder / "client"),
                "scope": "openid email groups",
                "oidcConfig": oidc,
            }
        ],
    }
    # JSON is YAML too.
    (folder / "proxy.yaml").write_text(json.dumps(config))
    return _running(
        [
            program("oauth2-proxy"),
            *("--alpha-config", str(folder / "proxy.yaml"), "--cookie-secret", "0123456789abcdef"),
            *("--cookie-secure=false", "--email-domain=*", "--skip-provider-button", "--reverse-proxy"),
            f"--redirect-url=http://127.0.0.1:{seen_at}/oauth2/callback",
        ],
        folder / "oauth2-proxy.log",
    )


_NGINX = """\
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log stderr;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  server {{
    listen 127.0.0.1:{port};
    proxy_set_header Host $http_host;
    location /oauth2/ {{ proxy_pass http://127.0.0.1:{auth}; }}
    location = /auth {{
      internal;
      proxy_pass http://127.0.0.1:{auth}/oauth2/auth;
      proxy_pass_request_body off;
      proxy_set_header Content-Length "";
      proxy_set_header Host $http_host;
    }}
    location / {{
      auth_request /auth;
      error_page 401 = /oauth2/start?rd=$request_uri;
      auth_request_set $user $upstream_http_x_auth_request_user;
      auth_request_set $groups $upstream_http_x_auth_request_groups;
      proxy_set_header X-Forwarded-User $user;
      proxy_set_header X-Forwarded-Groups $groups;
      proxy_set_header Svc-Proxy-Secret "{secret}";
      proxy_set_header Host $http_host;
      proxy_pass {dashboard};
    }}
  }}
}}
"""


def nginx(folder: Path, port: int, auth: int, dashboard: str) -> AbstractContextManager[None]:
    """nginx before the dashboard; oauth2-proxy at the port `auth` answers its questions."""
    text = _NGINX.format(folder=folder, port=port, auth=auth, dashboard=dashboard, secret=SECRET)
    (folder / "nginx.conf").write_text(text)
    return _running(
        [program("nginx"), "-c", str(folder / "nginx.conf"), "-e", "stderr", "-p", str(folder)],
        folder / "nginx.log",
    )


async def answering(port: int) -> None:
    """Wait until something listens."""

    async def connects() -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return False
        writer.close()
        return True

    await eventually(connects)
