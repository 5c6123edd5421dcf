package jobspec

import (
	"cmp"
	"fmt"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/model/fieldcheck"
	"github.com/cede-scheduler/cede/sdk/client"
)

// How instances on a disconnected node are treated. Names and defaults are Nomad's,
// with one difference: if lost_after is unset, instances are kept until the node
// reconnects.

// keepOriginal is the only supported value of reconcile: if the node reconnects, the
// original instance keeps running and its replacement is stopped.
const keepOriginal = "keep_original"

// nomadDisconnect reads the disconnect block and its older form, max_client_disconnect.
func (o *object) nomadDisconnect(to **client.DisconnectStrategy) {
	o.disconnect(to, "lost_after", map[string]string{
		"stop_on_client_after": "remove it: instances on a disconnected node keep running; lost_after sets when they are replaced",
	})
	o.duration("max_client_disconnect", "Disconnect.LostAfter", func(d time.Duration) {
		if *to != nil {
			o.reject(o.subpath("Disconnect.LostAfter"), o.origins[o.subpath("Disconnect.LostAfter")].at, "max_client_disconnect and disconnect are mutually exclusive", "remove max_client_disconnect: disconnect { lost_after } replaces it")
			return
		}
		*to = &client.DisconnectStrategy{LostAfter: &d}
	})
}

// disconnect reads the disconnect block. The name of the field lost_after and the
// unsupported fields depend on the dialect.
func (o *object) disconnect(to **client.DisconnectStrategy, lostAfter string, unsupported map[string]string) {
	d := o.child("a disconnect block", "disconnect", "Disconnect")
	if d == nil {
		return
	}
	*to = &client.DisconnectStrategy{}
	d.duration(lostAfter, "LostAfter", setPtr(&(*to).LostAfter))
	d.boolean("replace", "Replace", setPtr(&(*to).Replace))
	d.text("reconcile", "Reconcile", set(&(*to).Reconcile))
	d.unsupported(unsupported)
	d.done()
}

// disconnect validates and converts d. It returns nil if the group has no block.
func (c *conversion) disconnect(path string, d *client.DisconnectStrategy) *model.Disconnect {
	if d == nil {
		return nil
	}
	if cmp.Or(d.Reconcile, keepOriginal) != keepOriginal {
		c.add(path+".Reconcile", fmt.Sprintf("%.40q is not supported: when the node reconnects, the original instance is kept and its replacement is stopped", d.Reconcile), "write keep_original, or leave it out")
	}
	m := &model.Disconnect{Replace: d.Replace == nil || *d.Replace}
	if d.LostAfter == nil {
		return m
	}
	c.checkDuration(path+".LostAfter", *d.LostAfter)
	c.report(path+".LostAfter", fieldcheck.LostAfter(*d.LostAfter))
	m.LostAfter = int64(*d.LostAfter)
	return m
}

func fromDisconnect(m *model.Disconnect) *client.DisconnectStrategy {
	if m == nil {
		return nil
	}
	d := &client.DisconnectStrategy{Replace: new(m.Replace)}
	if m.LostAfter > 0 {
		d.LostAfter = new(time.Duration(m.LostAfter))
	}
	return d
}
