// Command gofields prints, for every built-in API type, which JSON fields its Go
// struct holds by pointer and which it leaves out when empty: the two facts about
// the wire format that neither OpenAPI nor the .proto files tell.
//
// One line per type: the OpenAPI name, then field:flags. Flags: p pointer, s slice,
// m map, v struct by value, n scalar by value; o omitempty, z omitzero.
package main

import (
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// name turns k8s.io/api/core/v1.Pod into io.k8s.api.core.v1.Pod.
func name(t reflect.Type) string {
	host, path, found := strings.Cut(t.PkgPath(), "/")
	if !found {
		return ""
	}
	labels := strings.Split(host, ".")
	for i, j := 0, len(labels)-1; i < j; i, j = i+1, j-1 {
		labels[i], labels[j] = labels[j], labels[i]
	}
	return strings.Join(labels, ".") + "." + strings.ReplaceAll(path, "/", ".") + "." + t.Name()
}

func element(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map || t.Kind() == reflect.Array {
		t = t.Elem()
	}
	return t
}

func flags(t reflect.Type, options string) string {
	out := "n"
	switch t.Kind() {
	case reflect.Pointer:
		out = "p"
	case reflect.Slice:
		out = "s"
	case reflect.Map:
		out = "m"
	case reflect.Struct:
		out = "v"
	}
	if strings.Contains(options, "omitempty") {
		out += "o"
	}
	if strings.Contains(options, "omitzero") {
		out += "z"
	}
	return out
}

type walker struct{ lines map[string]string }

func (w *walker) fields(t reflect.Type) []string {
	var out []string
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		json, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if json == "-" || !f.IsExported() {
			continue
		}
		e := element(f.Type)
		if json == "" && e.Kind() == reflect.Struct && (f.Anonymous || strings.Contains(options, "inline")) {
			out = append(out, w.fields(e)...)
			w.visit(e)
			continue
		}
		if json == "" {
			continue
		}
		out = append(out, json+":"+flags(f.Type, options))
		w.visit(e)
	}
	return out
}

func (w *walker) visit(t reflect.Type) {
	n := name(t)
	if t.Kind() != reflect.Struct || !strings.HasPrefix(n, "io.k8s.") {
		return
	}
	if _, done := w.lines[n]; done {
		return
	}
	w.lines[n] = ""
	fields := w.fields(t)
	sort.Strings(fields)
	w.lines[n] = strings.Join(fields, " ")
}

func main() {
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		scheme.AddToScheme, apiextensions.AddToScheme, apiregistration.AddToScheme, metav1.AddMetaToScheme,
	} {
		if err := add(all); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	w := &walker{lines: map[string]string{}}
	for _, t := range all.AllKnownTypes() {
		w.visit(t)
	}
	names := make([]string, 0, len(w.lines))
	for n := range w.lines {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		fmt.Println(strings.TrimSpace(n + " " + w.lines[n]))
	}
}
