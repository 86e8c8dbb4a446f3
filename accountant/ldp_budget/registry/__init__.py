"""Which mechanisms there are: plugins and their certificates, the collections that freeze one, and how they rank."""
