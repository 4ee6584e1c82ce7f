"""What a site keeps in the browser: cookies, local and session storage, databases; saved, restored and compared."""
