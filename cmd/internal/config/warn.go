package config

import "fmt"

// Warnings returns settings that are valid but insecure or without effect. They may
// be intended, for example in a private network, but the operator should see them.
func (l *Loaded) Warnings() (list []Problem) {
	c := &l.Config
	warn := func(key, text string) { list = append(list, Problem{Key: key, Where: l.source(key), Text: text}) }
	if c.Controller && c.TLS.Cert == "" && !onLoopback(c.Listen.HTTP) {
		warn("listen.http", "objects and tokens travel to "+c.Listen.HTTP+" in plain text: set tls.cert and tls.key")
	}
	if text := c.httpOpen(); text != "" && !c.Controller && !onLoopback(c.Listen.HTTP) {
		warn("listen.http", text)
	}
	// A pool of servers rejects that: see checkPool.
	if c.Server.Enabled && !c.Dev && !c.Pooled() && !onLoopback(c.Listen.RPC) && c.TLS.Cert == "" {
		warn("listen.rpc", "any host that reaches "+c.Listen.RPC+" is accepted as a server, without encryption: set tls.cert, tls.key and tls.ca, or listen on a loopback address")
	}
	if c.TLS.CA != "" && c.TLS.Cert == "" && c.Server.Enabled {
		warn("tls.ca", "tls.ca is set without a certificate, so this server does not encrypt: set tls.cert and tls.key")
	}
	if c.Server.Enabled && c.Server.BootstrapExpect > 1 && len(c.Server.Join) == 0 {
		warn("server.bootstrap_expect", fmt.Sprintf("%d servers must bootstrap together, but server.join is empty: this server waits until another server joins it, or for `cede server join`", c.Server.BootstrapExpect))
	}
	if c.Server.Enabled && c.Server.Workers == 0 && !c.Pooled() {
		warn("server.workers", "the only server processes no evaluations: jobs stay pending until the value is changed")
	}
	if c.metricsOpen() {
		warn("listen.metrics", "any host that reaches "+c.Listen.Metrics+" can read metrics without a token; profiles are not served there: set telemetry.token, or listen on a loopback address")
	}
	return list
}

// httpOpen returns the access that unauthenticated hosts have to the API, or "" if
// they have none.
func (c *Config) httpOpen() string {
	may := "do everything"
	if !c.Server.Enabled {
		may = "read the output of tasks"
	}
	const remedy = ", or listen on a loopback address"
	switch at := c.Listen.HTTP; {
	case !c.ACL.Enabled && c.TLS.Cert == "":
		return "any host that reaches " + at + " can " + may + ", without encryption: set acl.enabled, tls.cert and tls.key" + remedy
	case !c.ACL.Enabled && !c.TLS.VerifyClient:
		return "any host that reaches " + at + " can " + may + ": set acl.enabled" + remedy
	case c.TLS.Cert == "":
		return "tokens travel to " + at + " in plain text: set tls.cert and tls.key" + remedy
	}
	return ""
}
