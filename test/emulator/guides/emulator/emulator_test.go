package emulator_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"testing"
)

const callback = "http://localhost:3000/callback"

// The emulator runs beside the tests: npx passport-oauth-app emulator
func address() string {
	if given := os.Getenv("EMULATOR_URL"); given != "" {
		return given
	}
	return "http://127.0.0.1:4000"
}

func post(t *testing.T, path string, fields map[string]any) (int, map[string]any) {
	t.Helper()
	body, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Post(address()+path, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer := map[string]any{}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, answer
}

func token(t *testing.T, fields map[string]any) (int, map[string]any) {
	fields["client_id"], fields["client_secret"] = "sample-client-id", "sample-client-secret"
	return post(t, "/oauth/token", fields)
}

func logIn(t *testing.T, user string) map[string]any {
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.PostForm(address()+"/oauth/authorize", url.Values{
		"client_id": {"sample-client-id"}, "redirect_uri": {callback}, "response_type": {"code"},
		"scope": {"project"}, "user": {user}, "decision": {"approve"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	location, err := response.Location()
	if err != nil {
		t.Fatal(err)
	}
	code := location.Query().Get("code")
	_, tokens := token(t, map[string]any{"grant_type": "authorization_code", "redirect_uri": callback, "code": code})
	return tokens
}

func TestRefreshThroughAnOutage(t *testing.T) {
	post(t, "/_emulator/reset", nil)
	tokens := logIn(t, "1")
	post(t, "/_emulator/faults", map[string]any{"endpoint": "token", "status": 503})
	refresh := map[string]any{"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
	if status, _ := token(t, refresh); status != http.StatusServiceUnavailable {
		t.Fatalf("during the outage: %d", status)
	}
	status, tokens := token(t, refresh)
	if status != http.StatusOK {
		t.Fatalf("after the outage: %d", status)
	}
	post(t, "/_emulator/revoke", map[string]any{"userId": "1"})
	refresh["refresh_token"] = tokens["refresh_token"]
	if _, refusal := token(t, refresh); refusal["error"] != "invalid_grant" {
		t.Fatalf("after the revocation: %v", refusal)
	}
}
