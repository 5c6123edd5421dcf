// Package kubernetes holds cede kubernetes, which answers kube-scheduler from a watch
// of its cluster. It is the only package that connects package watch, and with it
// client-go, to the process in package app.
package kubernetes
