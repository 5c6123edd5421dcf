package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/sdk/client"
)

// startPool starts servers, each in a process, that form a cluster, and sets their
// addresses in conf.
func (t *Target) startPool(conf *client.Config) error {
	p, err := newProcesses(t.o.Program, t.o.Dir, t.o.Servers)
	if err != nil {
		return err
	}
	t.pool, p.level, p.server = p, "error", t.o.poolSettings()
	var urls []string
	for _, s := range p.list {
		if err := s.start(); err != nil {
			return errors.Join(err, p.close())
		}
		urls = append(urls, "http://"+s.http)
		t.metrics = append(t.metrics, "http://"+s.metrics+"/metrics")
	}
	conf.Address = strings.Join(urls, ",")
	return nil
}

// poolSettings returns the settings that differ from a server's defaults, as a
// configuration file.
func (o *Options) poolSettings() string {
	var list, heartbeat []string
	for name, value := range o.patience() {
		heartbeat = append(heartbeat, name+": "+value)
	}
	if len(heartbeat) > 0 {
		list = append(list, "heartbeat: {"+strings.Join(heartbeat, ", ")+"}")
	}
	if o.Workers > 0 {
		list = append(list, fmt.Sprintf("workers: %d", o.Workers))
	}
	return strings.Join(list, ", ")
}

// formed waits until all servers of the pool vote and one leads. If a server exits,
// it returns an error with its output.
func (t *Target) formed(ctx context.Context) error {
	if t.pool == nil {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for _, s := range t.pool.list {
		go func() {
			select {
			case <-s.ended:
				cancel(fmt.Errorf("server %s ended by itself", s.name))
			case <-ctx.Done():
			}
		}()
	}
	return t.pool.await(ctx, "not all servers vote", 50*time.Millisecond, func() bool {
		if t.pool.leader(ctx) == nil {
			return false
		}
		s, err := t.c.Operator().RaftStatus(ctx)
		if err != nil {
			return false // the servers are still starting
		}
		voters := 0
		for _, v := range s.Servers {
			if v.Voter {
				voters++
			}
		}
		return voters == t.o.Servers
	})
}
