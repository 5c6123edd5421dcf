package api

import (
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server"
)

var (
	_ Server      = (*server.Server)(nil)
	_ Replication = (*replication.Node)(nil)
)
