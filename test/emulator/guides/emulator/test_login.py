import json
import urllib.error
import urllib.parse
import urllib.request

CALLBACK = "http://localhost:3000/callback"
CLIENT = {"client_id": "sample-client-id", "client_secret": "sample-client-secret"}


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_args):
        return None


def send(url, data, content_type):
    """Returns status, headers and body of a POST, whatever the status is."""
    request = urllib.request.Request(url, data.encode(), {"content-type": content_type})
    try:
        response = urllib.request.build_opener(NoRedirect).open(request)
    except urllib.error.HTTPError as error:
        response = error
    return response.status, response.headers, response.read()


def token(emulator, **fields):
    body = json.dumps({**CLIENT, **fields})
    status, _headers, answer = send(f"{emulator.url}/oauth/token", body, "application/json")
    return status, json.loads(answer)


def log_in(emulator, user):
    request = {"client_id": CLIENT["client_id"], "redirect_uri": CALLBACK, "response_type": "code", "scope": "project"}
    form = urllib.parse.urlencode({**request, "user": user, "decision": "approve"})
    _status, headers, _body = send(f"{emulator.url}/oauth/authorize", form, "application/x-www-form-urlencoded")
    code = urllib.parse.parse_qs(urllib.parse.urlsplit(headers["location"]).query)["code"][0]
    return token(emulator, grant_type="authorization_code", redirect_uri=CALLBACK, code=code)[1]


def test_refresh_through_an_outage(emulator):
    tokens = log_in(emulator, "1")
    emulator.control("POST", "faults", {"endpoint": "token", "status": 503})
    refresh = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
    assert token(emulator, **refresh)[0] == 503
    status, tokens = token(emulator, **refresh)
    assert status == 200
    emulator.control("POST", "revoke", {"userId": "1"})
    status, refusal = token(emulator, grant_type="refresh_token", refresh_token=tokens["refresh_token"])
    assert (status, refusal["error"]) == (400, "invalid_grant")


def test_the_next_test_has_a_fresh_service(emulator):
    assert emulator.control("GET", "requests") == []
