package app

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/sdk/client"
)

// metricsGuard authorizes requests to the metrics listener. Its token is separate from
// those of the API, because metrics are needed most when no server can check tokens.
type metricsGuard struct {
	local bool                     // the listener is reachable on loopback only
	token atomic.Pointer[[32]byte] // SHA-256 of the token; nil: not required
}

// setToken sets the required token; if it is empty, none is required.
func (g *metricsGuard) setToken(token config.Secret) {
	if token == "" {
		g.token.Store(nil)
		return
	}
	sum := sha256.Sum256([]byte(token))
	g.token.Store(&sum)
}

// protectMetrics requires the token, if one is set.
func (g *metricsGuard) protectMetrics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if want := g.token.Load(); want != nil && !hasToken(r, want) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			writeErrorResponse(w, http.StatusUnauthorized, client.CodeUnauthenticated, "missing or unknown token", "send Authorization: Bearer TOKEN with the token of telemetry.token")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// protectProfiles requires the token or a loopback listener, because profiles are
// expensive.
func (g *metricsGuard) protectProfiles(next http.Handler) http.Handler {
	guarded := g.protectMetrics(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.local && g.token.Load() == nil {
			writeErrorResponse(w, http.StatusForbidden, client.CodeForbidden, "profiles are available on loopback only", "set telemetry.token, or listen.metrics to a loopback address")
			return
		}
		guarded.ServeHTTP(w, r)
	})
}

func hasToken(r *http.Request, want *[32]byte) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	have := sha256.Sum256([]byte(token))
	return ok && subtle.ConstantTimeCompare(have[:], want[:]) == 1
}
