package interlock.admission

decision := http.send({"method": "get", "url": "https://example.com"}).body if input.request.stream == "yes"
