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

// metricsGuard is who may ask what is measured. It does not ask the servers who
// somebody is, as the API does: measures are wanted most when there is nobody to ask.
type metricsGuard struct {
	local bool                     // this machine alone reaches the listener
	token atomic.Pointer[[32]byte] // its hash; nil: none is needed
}

// setToken has callers show this token from now on; empty: none.
func (g *metricsGuard) setToken(token config.Secret) {
	if token == "" {
		g.token.Store(nil)
		return
	}
	sum := sha256.Sum256([]byte(token))
	g.token.Store(&sum)
}

// protectMetrics guards what is measured.
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

// protectProfiles guards what costs much to answer: strangers never get it.
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
