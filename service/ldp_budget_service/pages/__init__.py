"""The pages: what a browser is given. Everything that they show comes from the API, under the reader's own key."""
