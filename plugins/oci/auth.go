package oci

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
)

// maxToken bounds the response of a token service.
const maxToken = 1 << 20

var parameter = regexp.MustCompile(`([a-z]+)="([^"]*)"`)

// authorize returns the authorization header that a registry requests: the credentials, or
// a token that its token service issues for them.
func (c *Client) authorize(ctx context.Context, r *Reference, challenge string) (string, error) {
	basic := ""
	if c.Credentials != nil {
		user, password, err := c.Credentials(r.Registry)
		if err != nil {
			return "", err
		}
		if user+password != "" {
			basic = "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
		}
	}
	scheme, rest, _ := strings.Cut(challenge, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		if basic == "" {
			return "", fmt.Errorf("registry %s requires credentials", r.Registry)
		}
		return basic, nil
	}
	parameters := map[string]string{}
	for _, match := range parameter.FindAllStringSubmatch(rest, -1) {
		parameters[match[1]] = match[2]
	}
	realm, err := url.Parse(parameters["realm"])
	if err != nil || realm.Host == "" || realm.Scheme != "https" && !strings.HasPrefix(r.base(), "http://") {
		return "", fmt.Errorf("registry %s names the invalid token service %.200q", r.Registry, parameters["realm"])
	}
	q := realm.Query()
	q.Set("service", parameters["service"])
	q.Set("scope", "repository:"+r.Repository+":pull")
	realm.RawQuery = q.Encode()
	text, err := c.fetch(ctx, realm.String(), "", basic, maxToken)
	if err != nil {
		return "", err
	}
	var token struct {
		Token       string `json:"token"`
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(text, &token); err != nil || token.Token+token.AccessToken == "" {
		return "", fmt.Errorf("token service %s returned no token", realm.Host)
	}
	if token.Token == "" {
		token.Token = token.AccessToken
	}
	return "Bearer " + token.Token, nil
}

// DockerConfig returns credentials from a file in the form of Docker's config.json, which
// is also that of Kubernetes' pull secrets. The file is read for each request, because a
// mounted Secret changes.
func DockerConfig(file string) func(registry string) (user, password string, err error) {
	return func(registry string) (string, string, error) {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", "", err
		}
		var config struct {
			Auths map[string]struct{ Auth, Username, Password string }
		}
		if err := json.Unmarshal(text, &config); err != nil {
			return "", "", fmt.Errorf("%s: %w", file, err)
		}
		entry, ok := config.Auths[registry]
		if !ok {
			entry = config.Auths["https://"+registry]
		}
		if entry.Auth == "" {
			return entry.Username, entry.Password, nil
		}
		plain, err := base64.StdEncoding.DecodeString(entry.Auth)
		if err != nil {
			return "", "", fmt.Errorf("%s: credentials of %s: %w", file, registry, err)
		}
		user, password, _ := strings.Cut(string(plain), ":")
		return user, password, nil
	}
}
