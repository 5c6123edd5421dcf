package jobspec

import (
	"cmp"
	"fmt"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/client"
)

// What becomes of instances while their node is silent. The words and defaults are
// Nomad's, but that without a time they are kept until the node returns.

// keepOriginal is which of two instances goes on when the node returns.
const keepOriginal = "keep_original"

// nomadDisconnect reads the block, and the short form that Nomad had before it.
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

// disconnect reads the block, whose fields each dialect writes in its own way.
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

// disconnect is what a group says, checked; nil where it says nothing.
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
	if *d.LostAfter == 0 {
		c.add(path+".LostAfter", "0s marks instances lost immediately", "remove disconnect for the same effect, or leave lost_after out to keep instances until the node reconnects")
	}
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
