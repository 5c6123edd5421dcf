package api

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	nomad "github.com/hashicorp/nomad/api"
)

// nomadMethods returns the methods of the handles of Nomad's client, by handle and
// name.
func nomadMethods(c *nomad.Client) map[string]reflect.Value {
	methods := map[string]reflect.Value{}
	handles := reflect.ValueOf(c)
	for i := range handles.NumMethod() {
		m := handles.Type().Method(i)
		if m.Type.NumIn() != 1 || m.Type.NumOut() != 1 || m.Type.Out(0).Kind() != reflect.Pointer || m.Name == "Raw" || m.Name == "ACLTokens" {
			continue
		}
		handle := handles.Method(i).Call(nil)[0]
		if handle.Type().Elem().PkgPath() != "github.com/hashicorp/nomad/api" {
			continue
		}
		for k := range handle.NumMethod() {
			methods[m.Name+"."+handle.Type().Method(k).Name] = handle.Method(k)
		}
	}
	return methods
}

// callBlindly makes a call with any arguments, and returns its error.
func callBlindly(n *nomadTour, method reflect.Value) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	t := method.Type()
	var args []reflect.Value
	for i := range t.NumIn() {
		in := t.In(i)
		switch {
		case t.IsVariadic() && i == t.NumIn()-1:
		case in == reflect.TypeFor[*nomad.Allocation]():
			args = append(args, reflect.ValueOf(n.alloc))
		case in == reflect.TypeFor[context.Context]():
			args = append(args, reflect.ValueOf(n.t.Context()))
		case in.Kind() == reflect.String:
			args = append(args, reflect.ValueOf("x").Convert(in))
		case in.Kind() == reflect.Pointer && !strings.HasPrefix(in.Elem().Name(), "Query") && !strings.HasPrefix(in.Elem().Name(), "Write"):
			args = append(args, filled(in.Elem()))
		default:
			args = append(args, reflect.Zero(in))
		}
	}
	for _, out := range method.Call(args) {
		switch v := out.Interface().(type) {
		case error:
			return v
		case <-chan error:
			return <-v
		}
	}
	return nil
}

// filled returns a pointer to a struct whose texts are not empty.
func filled(t reflect.Type) reflect.Value {
	p := reflect.New(t)
	if t.Kind() == reflect.Struct {
		for i := range t.NumField() {
			if f := p.Elem().Field(i); f.CanSet() && f.Kind() == reflect.String {
				f.SetString("x")
			}
		}
	}
	return p
}
