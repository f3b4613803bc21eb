// Package sigv4 owns the signature with which AWS wants a request: Signature Version 4, in the
// Authorization header. A [Signer] is made of a credential, a region and a service, and [Sign]
// gives the headers to add to one request.
//
// It is pure: the time and the body's hash are handed in, and what is signed is what the caller
// says it sends. It must not send, read a credential from anywhere, or let one out in an error.
//
//	signer, err := sigv4.New(credential, "eu-central-1", "bedrock")
//	…
//	header = sigv4.Sign(header, signer, &sigv4.Request{
//		Method: "POST", Host: "bedrock-runtime.eu-central-1.amazonaws.com",
//		Path: "/model/amazon.nova-lite-v1%3A0/converse", Body: sha256.Sum256(body), Time: now,
//	}, signed)
//
// The path is the one on the request line, base path and query included, and is encoded once more
// on the way into the signature, as every service but S3 wants it.
package sigv4
