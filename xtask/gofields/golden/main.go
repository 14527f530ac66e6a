// Command golden writes down what the original's codecs make of objects: it reads a YAML
// stream and prints, as JSON, each object as given, as the Go structs write it in JSON, and in
// protobuf (base64). The protobuf tests of crates/builtin compare with its output.
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	sigsyaml "sigs.k8s.io/yaml"
)

type entry struct {
	Given    json.RawMessage `json:"given"`
	Full     json.RawMessage `json:"full"`
	Protobuf string          `json:"protobuf"`
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	all := runtime.NewScheme()
	must(scheme.AddToScheme(all))
	must(apiextensions.AddToScheme(all))
	must(apiregistration.AddToScheme(all))
	must(metav1.AddMetaToScheme(all))
	metav1.AddToGroupVersion(all, schema.GroupVersion{Group: "apps", Version: "v1"})
	decoder := serializer.NewCodecFactory(all).UniversalDeserializer()
	encoder := protobuf.NewSerializer(all, all)
	reader := yaml.NewYAMLReader(bufio.NewReader(os.Stdin))
	var out []entry
	for {
		doc, err := reader.Read()
		if err == io.EOF {
			break
		}
		must(err)
		given, err := sigsyaml.YAMLToJSON(doc)
		must(err)
		object, gvk, err := decoder.Decode(given, nil, nil)
		must(err)
		object.GetObjectKind().SetGroupVersionKind(*gvk)
		full, err := json.Marshal(object)
		must(err)
		body, err := runtime.Encode(encoder, object)
		must(err)
		out = append(out, entry{given, full, base64.StdEncoding.EncodeToString(body)})
	}
	lines := json.NewEncoder(os.Stdout)
	for _, e := range out {
		must(lines.Encode(e))
	}
}
