// Package agent holds cede agent, which runs a server, a node agent or both, and cede
// config, which checks and prints their configuration. It reads the configuration and
// hands it to package app; it starts nothing itself.
package agent
