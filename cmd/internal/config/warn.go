package config

import "fmt"

// Warnings says what is as it was asked for, and open to whoever reaches it, or has
// nothing done: the operator may want that, on a network of their own or for a while,
// and is to know.
func (l *Loaded) Warnings() (list []Problem) {
	c := &l.Config
	warn := func(key, text string) { list = append(list, Problem{Key: key, Where: l.source(key), Text: text}) }
	if text := c.httpOpen(); text != "" && !onLoopback(c.Listen.HTTP) {
		warn("listen.http", text)
	}
	// Several servers refuse that: see checkPool.
	if c.Server.Enabled && !c.Dev && !c.Pooled() && !onLoopback(c.Listen.RPC) && c.TLS.Cert == "" {
		warn("listen.rpc", "whoever reaches "+c.Listen.RPC+" is taken for another server, in plain text: set tls.cert, tls.key and tls.ca, or listen on a loopback address")
	}
	if c.Pooled() && c.TLS.Cert != "" && c.TLS.ServerName == "" {
		warn("tls.server_name", "is empty: whoever has a server's certificate of tls.ca under any name, such as that of a node, is taken for a server of the pool: set a name that the servers' certificates alone bear")
	}
	if c.TLS.CA != "" && c.TLS.Cert == "" && c.Server.Enabled {
		warn("tls.ca", "there is an authority and no certificate: this server answers in plain text: set tls.cert and tls.key")
	}
	if c.Server.Enabled && c.Server.BootstrapExpect > 1 && len(c.Server.Join) == 0 {
		warn("server.bootstrap_expect", fmt.Sprintf("%d servers are to begin together, and server.join names none of them: this one waits until another joins it, or `cede server join` has it join one", c.Server.BootstrapExpect))
	}
	if c.Server.Enabled && c.Server.Workers == 0 && !c.Pooled() {
		warn("server.workers", "this server works on no evaluations, and there is no other: what is submitted waits until there is another number")
	}
	if c.metricsOpen() {
		warn("listen.metrics", "whoever reaches "+c.Listen.Metrics+" reads what is measured, without a token; profiles are not served there: set telemetry.token, or listen on a loopback address")
	}
	return list
}

// httpOpen is what strangers who reach the API may do; empty: nothing that they may not.
func (c *Config) httpOpen() string {
	may := "do everything"
	if !c.Server.Enabled {
		may = "read what work here writes"
	}
	const remedy = ", or listen on a loopback address"
	switch at := c.Listen.HTTP; {
	case !c.ACL.Enabled && c.TLS.Cert == "":
		return "whoever reaches " + at + " may " + may + ", and all of it travels in plain text: set acl.enabled, tls.cert and tls.key" + remedy
	case !c.ACL.Enabled && !c.TLS.VerifyClient:
		return "whoever reaches " + at + " may " + may + ": set acl.enabled" + remedy
	case c.TLS.Cert == "":
		return "tokens travel to " + at + " in plain text: set tls.cert and tls.key" + remedy
	}
	return ""
}
