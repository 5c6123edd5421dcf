package config

import (
	"strings"
	"time"
)

// checkKubernetes checks the configuration of cede kubernetes. A caller decides which
// pods are evicted, so that other hosts must authenticate.
func checkKubernetes(c *Config, bad report) {
	k := &c.Kubernetes
	if c.Server.Enabled || c.Client.Enabled || c.Member.Enabled {
		bad("server.enabled", "cede kubernetes runs no server, node or agent of a member cluster: use cede agent for them")
	}
	if k.Policy == "" {
		bad("kubernetes.policy", "is required: the name of a built-in policy, or a path")
	}
	if name, ok := strings.CutPrefix(k.Policy, PoolScheme); ok {
		if name == "" || strings.ContainsAny(name, "/?") {
			bad("kubernetes.policy", "%q is not of the form %sNAME: the settings belong to the version in the pool", k.Policy, PoolScheme)
		}
		if len(k.Servers) == 0 {
			bad("kubernetes.servers", "is required for a policy of a pool")
		}
		if k.PolicyConfig != "" {
			bad("kubernetes.policy_config", "is not used for a policy of a pool: the settings belong to the version there")
		}
	}
	checkURLs("kubernetes.servers", k.Servers, bad)
	if k.Token != "" && len(k.Token) < minToken {
		bad("kubernetes.token", "%d bytes can be guessed: at least %d are required (`openssl rand -hex 32` creates a token)", len(k.Token), minToken)
	}
	if len(k.ClientNames) > 0 && !c.TLS.VerifyClient {
		bad("kubernetes.client_names", "requires tls.verify_client: without it, client certificates are not read")
	}
	if !onLoopback(c.Listen.HTTP) && k.Token == "" && !c.TLS.VerifyClient {
		bad("kubernetes.token", "any host that reaches %s could choose evictions: set kubernetes.token or tls.verify_client, or listen on a loopback address", c.Listen.HTTP)
	}
	if namespace, name, _ := strings.Cut(k.Lease, "/"); k.Lease != "" && (namespace == "" || name == "" || strings.Contains(name, "/")) {
		bad("kubernetes.lease", "%q is not of the form NAMESPACE/NAME", k.Lease)
	}
	if k.LeaseDuration < 2*time.Second || k.LeaseDuration > time.Hour {
		bad("kubernetes.lease_duration", "must be between 2s and 1h")
	}
	for key, positive := range map[string]bool{
		"kubernetes.policy_interval": k.PolicyInterval > 0, "kubernetes.deadline": k.Deadline > 0, "kubernetes.eviction_deadline": k.EvictionDeadline > 0,
	} {
		if !positive {
			bad(key, "must be more than 0")
		}
	}
}
