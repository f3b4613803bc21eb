package sigv4_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/sigv4"
)

var example = sigv4.Credential{AccessKey: "AKIDEXAMPLE", SecretKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}

var at = time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC)

func signer(t testing.TB, c sigv4.Credential, region, service string) *sigv4.Signer {
	s, err := sigv4.New(c, region, service)
	require.NoError(t, err)
	return s
}

// The examples of AWS's own test suite for the algorithm, and of its documentation (IAM).
func TestPublishedSignatures(t *testing.T) {
	type fields = []sigv4.Field
	for _, c := range []struct {
		name, method, path string
		header             fields
		body               string
		signed, signature  string
	}{
		{"get-vanilla", "GET", "/", nil, "", "host;x-amz-date", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		{"get-vanilla, no path", "GET", "", nil, "", "host;x-amz-date", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		{"get-relative", "GET", "/example/..", nil, "", "host;x-amz-date", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		{"get-slash-dot-slash", "GET", "/./", nil, "", "host;x-amz-date", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		{"get-slashes", "GET", "//example//", nil, "", "host;x-amz-date", "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84"},
		{"get-unreserved", "GET", "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", nil, "", "host;x-amz-date", "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"},
		{"get-utf8", "GET", "/\u1234", nil, "", "host;x-amz-date", "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
		{"get-vanilla-query-order-key-case", "GET", "/?Param2=value2&Param1=value1", nil, "", "host;x-amz-date", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
		{"get-vanilla-empty-query-key", "GET", "/?Param1=value1", nil, "", "host;x-amz-date", "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"},
		{"get-header-value-trim", "GET", "/", fields{{"My-Header1", " value1"}, {"My-Header2", ` "a   b   c"`}}, "", "host;my-header1;my-header2;x-amz-date", "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
		{"post-vanilla", "POST", "/", nil, "", "host;x-amz-date", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
		{"post-header-key-sort", "POST", "/", fields{{"My-Header1", "value1"}}, "", "host;my-header1;x-amz-date", "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c"},
		{"post-x-www-form-urlencoded", "POST", "/", fields{{"Content-Type", "application/x-www-form-urlencoded"}}, "Param1=value1", "content-type;host;x-amz-date", "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := sigv4.Sign(nil, signer(t, example, "us-east-1", "service"), &sigv4.Request{
				Method: c.method, Host: "example.amazonaws.com", Path: c.path, Body: sha256.Sum256([]byte(c.body)), Time: at,
			}, c.header)
			require.Equal(t, fields{
				{"X-Amz-Date", "20150830T123600Z"},
				{"Authorization", "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=" + c.signed + ", Signature=" + c.signature},
			}, got)
		})
	}
	got := sigv4.Sign(nil, signer(t, example, "us-east-1", "iam"), &sigv4.Request{
		Method: "GET", Host: "iam.amazonaws.com", Path: "/?Action=ListUsers&Version=2010-05-08", Body: sha256.Sum256(nil), Time: at,
	}, fields{{"content-type", "application/x-www-form-urlencoded; charset=utf-8"}})
	require.True(t, strings.HasSuffix(got[1].Value, "Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"), got[1].Value)
}

// The same requests signed by botocore 1.43.
func TestSignaturesOfAnotherImplementation(t *testing.T) {
	body := sha256.Sum256([]byte(`{"messages":[]}`))
	json := []sigv4.Field{{Name: "Content-Type", Value: "application/json"}}
	got := sigv4.Sign(nil, signer(t, example, "eu-central-1", "bedrock"), &sigv4.Request{
		Method: "POST", Host: "bedrock-runtime.eu-central-1.amazonaws.com", Body: body, Time: at,
		Path: "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile%2Fus.anthropic.claude-opus-4-6-v1/converse-stream",
	}, json)
	require.Equal(t, "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/eu-central-1/bedrock/aws4_request, SignedHeaders=content-type;host;x-amz-date, "+
		"Signature=0b454164e747ac77cb63b09c052ed7b3063c6e62f6b5c236b46093f550473db7", got[1].Value)

	temporary := example
	temporary.SessionToken = "FwoGZXIvYXdzEXAMPLE//token=="
	got = sigv4.Sign(nil, signer(t, temporary, "us-east-1", "bedrock"), &sigv4.Request{
		Method: "POST", Host: "bedrock-runtime.us-east-1.amazonaws.com", Body: body, Time: at, Path: "/model/amazon.nova-lite-v1%3A0/converse",
	}, json)
	require.Equal(t, []sigv4.Field{
		{Name: "X-Amz-Date", Value: "20150830T123600Z"},
		{Name: "X-Amz-Security-Token", Value: temporary.SessionToken},
		{Name: "Authorization", Value: "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/bedrock/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, " +
			"Signature=760abc38b4f1452eba80f5f6f6e981e4c3e9bcc0bd334dd153e1df356c573969"},
	}, got)
}

// What is sent in another way is signed as the same request where it is the same to the service,
// and as another where it is not.
func TestWhatMakesADifference(t *testing.T) {
	type fields = []sigv4.Field
	s := signer(t, example, "us-east-1", "service")
	sign := func(path string, header fields) string {
		got := sigv4.Sign(nil, s, &sigv4.Request{Method: "GET", Host: "a.example", Path: path, Time: at}, header)
		return got[len(got)-1].Value
	}
	plain := sign("/a?x=1&y=b%20c", nil)
	for _, path := range []string{"/a?y=b%20c&x=1", "/a?y=b+c&x=1&", "/./a?x=1&y=b%20%63", "//a?x=1&y=b c"} {
		require.Equal(t, plain, sign(path, nil), path)
	}
	for _, path := range []string{"/a", "/a/?x=1&y=b%20c", "/b?x=1&y=b%20c", "/a?x=1&y=b%2520c", "/a?x=1&y=b%20c&x=1", "/%61?x=1&y=b%20c"} {
		require.NotEqual(t, plain, sign(path, nil), path)
	}
	require.Equal(t, sign("/", fields{{"A", "1"}, {"b", "2"}, {"a", "3"}}), sign("/", fields{{"b", "  2 "}, {"a", "1"}, {"a", "3\t"}}))
	require.NotEqual(t, sign("/", fields{{"a", "1"}, {"a", "3"}}), sign("/", fields{{"a", "3"}, {"a", "1"}}))
	require.Contains(t, sign("/", fields{{"a", "1"}, {"A", "3"}}), "SignedHeaders=a;host;x-amz-date,")
	require.Equal(t, sign("/", nil), sign("/", fields{{"Host", "other"}, {"X-Amz-Date", "x"}, {"authorization", "y"}, {"x-amz-security-token", "z"}}))
}

func TestTheKeyOfADayIsNotThatOfTheNext(t *testing.T) {
	s := signer(t, example, "us-east-1", "service")
	sign := func(at time.Time) string {
		return sigv4.Sign([]sigv4.Field(nil), s, &sigv4.Request{Method: "GET", Host: "a.example", Path: "/", Time: at}, nil)[1].Value
	}
	first, next := sign(at), sign(at.AddDate(0, 0, 1))
	require.NotEqual(t, first, next)
	require.Equal(t, first, sign(at.In(time.FixedZone("", 7200))))
	other := signer(t, example, "us-east-1", "service")
	require.Equal(t, next, sigv4.Sign([]sigv4.Field(nil), other, &sigv4.Request{Method: "GET", Host: "a.example", Path: "/", Time: at.AddDate(0, 0, 1)}, nil)[1].Value)
}

func TestManySignAtOnce(t *testing.T) {
	s := signer(t, example, "us-east-1", "service")
	want := map[int]string{}
	sign := func(day int) string {
		return sigv4.Sign([]sigv4.Field(nil), s, &sigv4.Request{Method: "GET", Host: "a.example", Path: "/", Time: at.AddDate(0, 0, day)}, nil)[1].Value
	}
	for day := range 3 {
		want[day] = sign(day)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 300 {
				if got := sign(i % 3); got != want[i%3] {
					t.Errorf("%s, want %s", got, want[i%3])
				}
			}
		})
	}
	all.Wait()
}

func TestSecretsDoNotPrint(t *testing.T) {
	c := example
	c.SessionToken = "token-of-the-session"
	s := signer(t, c, "us-east-1", "bedrock")
	for _, form := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		for _, v := range []any{c, &c, s} {
			text := fmt.Sprintf(form, v)
			require.NotContains(t, text, "wJalrX", form)
			require.NotContains(t, text, c.SessionToken, form)
			require.Contains(t, text, "AKIDEXAMPLE", form)
		}
	}
}

func TestCredentials(t *testing.T) {
	for text, want := range map[string]sigv4.Credential{
		"AKID:se/cr+et":        {AccessKey: "AKID", SecretKey: "se/cr+et"},
		"AKID:secret:tok/en==": {AccessKey: "AKID", SecretKey: "secret", SessionToken: "tok/en=="},
	} {
		got, err := sigv4.ParseCredential(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"", "AKID", "AKID:", ":secret", "AKID:hush hush", "AK ID:hush", "AKID:hush:", "AKID:hush:a\nb", "AKID:hush:a:b\x7f"} {
		_, err := sigv4.ParseCredential(text)
		require.Error(t, err, text)
		require.NotContains(t, err.Error(), "hush")
	}
	for _, bad := range [][2]string{{"", "bedrock"}, {"us-east-1", ""}, {"us/east", "bedrock"}, {"us-east-1", "be\nd"}} {
		_, err := sigv4.New(example, bad[0], bad[1])
		require.Error(t, err)
	}
}

func TestScope(t *testing.T) {
	for host, want := range map[string]string{
		"bedrock-runtime.us-east-1.amazonaws.com":                        "bedrock us-east-1",
		"bedrock-runtime-fips.us-gov-west-1.amazonaws.com:443":           "bedrock us-gov-west-1",
		"Bedrock-Runtime.cn-north-1.amazonaws.com.cn":                    "bedrock cn-north-1",
		"vpce-0a1b-2c3d.bedrock-runtime.eu-central-1.vpce.amazonaws.com": "bedrock eu-central-1",
		"bedrock-mantle.us-east-1.api.aws":                               "bedrock-mantle us-east-1",
		"runtime.sagemaker.ap-southeast-2.amazonaws.com":                 "sagemaker ap-southeast-2",
	} {
		service, region, ok := sigv4.Scope(host)
		require.True(t, ok, host)
		require.Equal(t, want, service+" "+region)
	}
	for _, host := range []string{"", "localhost:8080", "10.0.0.1", "us-east-1", "proxy.example.com", "a.us-east-.b", "a.us--1.b", ".us-east-1.b"} {
		_, _, ok := sigv4.Scope(host)
		require.False(t, ok, host)
	}
}

func FuzzSign(f *testing.F) {
	f.Add("POST", "/a/../b?x=%", "content-type", "a  b")
	f.Fuzz(func(t *testing.T, method, path, name, value string) {
		got := sigv4.Sign(nil, signer(t, example, "us-east-1", "service"), &sigv4.Request{Method: method, Host: "a.example", Path: path, Time: at},
			[]sigv4.Field{{Name: name, Value: value}, {Name: "x-amz-b", Value: value}})
		require.Regexp(t, `Signature=[0-9a-f]{64}$`, got[1].Value)
	})
}

func BenchmarkSign(b *testing.B) {
	s := signer(b, example, "us-east-1", "bedrock")
	r := &sigv4.Request{Method: "POST", Host: "bedrock-runtime.us-east-1.amazonaws.com", Path: "/model/amazon.nova-lite-v1%3A0/converse", Time: at}
	header := []sigv4.Field{{Name: "Content-Type", Value: "application/json"}}
	dst := make([]sigv4.Field, 0, 4)
	b.ReportAllocs()
	for b.Loop() {
		sigv4.Sign(dst, s, r, header)
	}
}
